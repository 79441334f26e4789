export interface Config {
  orderkit?: {
    /**
     * Orderkit's service, as the backend reaches it.
     */
    url?: string;
    /**
     * Orderkit's service, as browsers reach it; default: url.
     */
    publicUrl?: string;
    catalog?: {
      /**
       * A token of the service that may only read: `orderkit access add NAME --right read`.
       * @visibility secret
       */
      token?: string;
      /**
       * The system that orders and kits belong to; default: orderkit. Empty: none.
       */
      system?: string;
      /**
       * Whether an order's page links to the forms that change and end it; default: true. With the front-end
       * plugin, false leaves one way: the tab Order.
       */
      formLinks?: boolean;
      /**
       * Who owns the system, and kits without an owner; default: group:default/platform.
       */
      owner?: string;
    };
  };
}
